"""The names that other programs and papers use for what has another name here.

They are not accepted: an error suggests the name that is. A test checks that every name on the
right exists.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

Usual = Mapping[str, str]
"""Names here, with spaces between, by a usual name in lower case without `-` and `_`."""

MODELS: Usual = {
    "attention": "transformer linear-attention",
    "bilinearfull": "bilinear",
    "bilinearrnn": "bilinear",
    "cprnn": "bilinear-cp",
    "elman": "rnn",
    "elmanrnn": "rnn",
    "gatedlinearattention": "gla",
    "gdn": "gated-deltanet",
    "gpt": "transformer",
    "gpt2": "transformer",
    "griffin": "rg-lru",
    "hawk": "rg-lru",
    "kimideltaattention": "kda",
    "linattn": "linear-attention",
    "lineartransformer": "linear-attention",
    "mamba1": "mamba",
    "minimalgru": "min-gru",
    "pathtransformer": "path-attention",
    "pd": "pd-ssm",
    "recurrentgemma": "rg-lru",
    "rwkv": "rwkv7 rwkv6 rwkv4",
    "s4": "s4d",
    "s6": "mamba",
    "selectivessm": "mamba",
    "sdssm": "sd-ssm",
    "simplernn": "rnn",
    "ssd": "mamba2",
    "ssm": "mamba s4d",
    "tanhrnn": "rnn",
    "ttt": "ttt-linear",
    "universaltransformer": "looped-transformer",
    "vanillarnn": "rnn",
}

TASKS: Usual = {
    "addition": "modular-addition",
    "addmod": "modular-addition",
    "additionmodulo": "modular-addition",
    "binaryaddition": "adder",
    "cycle": "cycle-navigation",
    "dyck": "dyck-1",
    "dyck1": "dyck-1",
    "fsm": "random-fsm",
    "dfa": "random-fsm",
    "modadd": "modular-addition",
    "modarith": "modular-arithmetic",
    "modsum": "modular-addition",
    "permutation": "s5 symmetric",
    "permutations": "s5 symmetric",
    "quaterniongroup": "quaternion",
    "randomautomaton": "random-fsm",
    "randomdfa": "random-fsm",
    "statemachine": "random-fsm",
    "sum": "modular-addition",
    "xor": "parity",
}

SUITES: Usual = {
    "bilinearhierarchy": "hierarchy",
    "deltaproduct": "deltaproduct-s5 deltaproduct-paper",
    "expressivity": "ssm-expressivity-star-free ssm-expressivity-paper",
    "lengthgen": "length-generalisation",
    "lengthgeneralization": "length-generalisation",
    "mamba3": "mamba3-formal-languages mamba3-paper",
    "slice": "slice-paper regular-languages",
}
"""Suites and protocols."""

COMMANDS: Usual = {
    "bibtex": "cite",
    "citation": "cite",
    "config": "info",
    "data": "gen",
    "describe": "show",
    "draw": "plot",
    "env": "info",
    "estimate": "predict",
    "evaluate": "eval",
    "evaluation": "eval",
    "figure": "plot",
    "fit": "train",
    "generate": "gen",
    "learn": "train",
    "ls": "list",
    "models": "list",
    "prove": "certify",
    "run": "train",
    "runs": "list",
    "search": "sweep",
    "suite": "reproduce",
    "suites": "list",
    "table": "report",
    "tasks": "list",
    "test": "eval",
    "theory": "predict",
    "training": "train",
    "validate": "check",
    "verify": "certify",
    "versions": "info",
}

CHOICES: Usual = {
    "bce": "cross-entropy",
    "ce": "cross-entropy",
    "crossentropyloss": "cross-entropy",
    "l2": "squared-error",
    "labelsmoothing": "smoothed-cross-entropy",
    "mse": "squared-error",
    "mseloss": "squared-error",
    "nll": "cross-entropy",
    "xent": "cross-entropy",
}
"""Values of settings: losses."""

OPTIONS: Usual = {
    "arch": "model",
    "architecture": "model",
    "attnheads": "heads",
    "batch": "batch-size",
    "bs": "batch-size",
    "checkpoint": "resume",
    "checkpointfreq": "checkpoint-every",
    "clipnorm": "clip",
    "configfile": "config",
    "continue": "resume",
    "contextlength": "train-length length",
    "cuda": "device",
    "data": "task",
    "dataset": "task",
    "depth": "layers",
    "dim": "width hidden",
    "dmodel": "width hidden",
    "dstate": "state",
    "dtype": "precision",
    "earlystopping": "patience",
    "embdim": "embed-dim",
    "embeddingdim": "embed-dim",
    "embeddingsize": "embed-dim",
    "eps": "epsilon",
    "epochs": "steps",
    "epoch": "steps",
    "evalevery": "validate-every",
    "evallength": "length",
    "evallengths": "length",
    "fp16": "precision",
    "bf16": "precision",
    "amp": "precision",
    "gpu": "device",
    "gradclip": "clip",
    "gradientclipping": "clip",
    "gradnorm": "clip",
    "headdim": "key-dim",
    "hiddendim": "hidden width",
    "hiddensize": "hidden width",
    "iters": "steps",
    "iterations": "steps",
    "jsonoutput": "json",
    "len": "length train-length",
    "learningrate": "lrs",
    "learningrates": "lrs",
    "logger": "log",
    "lr": "lrs",
    "lrscheduler": "schedule",
    "lrschedule": "schedule",
    "maxgradnorm": "clip",
    "maxiters": "steps",
    "maxlen": "train-length length",
    "maxlength": "train-length length",
    "maxsteps": "steps",
    "maxepochs": "steps",
    "modeldim": "width hidden",
    "modelname": "model",
    "nembd": "width",
    "nepochs": "steps",
    "nheads": "heads",
    "nhidden": "hidden width",
    "niters": "steps",
    "nlayers": "layers",
    "nsamples": "samples train-samples",
    "nsteps": "steps",
    "nseeds": "seeds",
    "numepochs": "steps",
    "numheads": "heads",
    "numhouseholder": "householders",
    "numhouseholders": "householders",
    "numlayers": "layers",
    "numsamples": "samples train-samples",
    "numseeds": "seeds",
    "numsteps": "steps",
    "numthreads": "threads jobs",
    "numtrain": "train-samples",
    "numworkers": "threads jobs",
    "opt": "optimizer",
    "optim": "optimizer",
    "optimiser": "optimizer",
    "outdir": "out",
    "outfile": "out",
    "output": "out",
    "outputdir": "out",
    "overwrite": "force",
    "replace": "force",
    "randomseed": "seed",
    "savedir": "out",
    "saveevery": "checkpoint-every",
    "savepath": "out",
    "scheduler": "schedule",
    "seqlen": "train-length length",
    "seqlength": "train-length length",
    "sequencelength": "train-length length",
    "statedim": "state hidden",
    "statesize": "state hidden",
    "tensorboard": "log",
    "testlen": "test-length length",
    "testlengths": "test-length length",
    "testsize": "samples",
    "tasks": "task",
    "trainlengths": "train-length",
    "trainsize": "train-samples",
    "trainsteps": "steps",
    "totalsteps": "steps",
    "units": "hidden width",
    "valevery": "validate-every",
    "valinterval": "validate-every",
    "wandb": "log",
    "warmupratio": "warmup",
    "warmupsteps": "warmup",
    "wd": "weight-decay",
    "workers": "jobs threads",
}
"""Options, without their `--`."""

NAMES: tuple[Usual, ...] = (MODELS, TASKS, SUITES, COMMANDS, CHOICES)
"""Everything but options."""


def bare(name: str) -> str:
    """A name in lower case, without `-`, `_` and spaces."""
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")


def meant(
    name: str, known: Iterable[str], usual: Iterable[Usual] = NAMES, cutoff: float = 0.5
) -> str | None:
    """The known name that a wrong one stands for; None where there is none.

    It is the same but for case, hyphens and underscores; or the wrong one is a usual name for it;
    or its letters are the nearest.
    """
    names = list(known)
    alike = {bare(each): each for each in reversed(names)}
    if bare(name) in alike:
        return alike[bare(name)]
    for table in usual:
        for ours in table.get(bare(name), "").split():
            if ours in names:
                return ours
    close = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    if not close:
        lower = {each.casefold(): each for each in reversed(names)}
        close = difflib.get_close_matches(name.casefold(), list(lower), n=1, cutoff=cutoff)
        return lower[close[0]] if close else None
    return close[0]
