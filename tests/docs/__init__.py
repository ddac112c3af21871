"""Examples in the documentation work, and everything the server offers is documented.

The pages are followed as a reader would: a page's fences run in order, in one directory, with one set of
environment variables and one Python namespace. What a fence's second word means:

    ```python                 run; `no-run` where it cannot be
    ```console serve          `$ ` lines start servers (`make run`, `redrive serve …`), on ports that are free here
    ```console run            `$ ` lines are run by bash, and what they print is compared with the lines below
    ```text output            what the fence before printed
    ```json policy.json       a file to write, whatever the language

In what is compared `…` stands for anything. Fences without such a word are read by people alone.
"""
