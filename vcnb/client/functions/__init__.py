"""Functions, sweeps and notebooks as jobs.

    @cluster.function(resources={"cpu": 1}, retries=2)
    def train(lr): ...

    train.submit(0.1).result()                       one Job with one pod
    train.map([0.1, 0.01]).results()                 one Job with one pod per item
    cluster.sweep(train, {"lr": [0.1, 0.01]}).to_pandas()
    cluster.notebook("train.ipynb", parameters={"lr": 0.1}).result().outputs

How it travels: ``payload`` packs what is to be run into a Secret, ``pod/`` runs it, ``wire`` says how results come back.
``options`` makes the Job, ``run``, ``sweep`` and ``notebook`` are the handles, ``handles`` finds the right one for a job.
"""
