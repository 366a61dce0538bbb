"""What users see of the program, as text files: recorded of one version, compared with another.

    python -m tests.frozen record FOLDER [--only SECTION ...]
    python -m tests.frozen compare FOLDER [--only SECTION ...]

`record` writes one file per output, FOLDER/SECTION/NAME.txt: of a command line its exit code, the
number of warnings, standard output and standard error; of the library signatures and values.
`compare` records anew and shows what differs. Only the command line, `import statetrack as st` and
the files of runs are used, so that everything inside may move between the two.

Of a section with training or searches, numbers are those of one machine: record and compare on the
same one, with the same versions of the packages. Times, paths, versions and facts of the machine
are replaced (`normalising.py`).
"""
