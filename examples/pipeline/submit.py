"""The command `evermat` as a script, which is what `spark-submit` wants.

spark-submit --master spark://host:7077 submit.py pipeline run pipeline.toml
"""

from evermat.cli import main

if __name__ == "__main__":
    main()
