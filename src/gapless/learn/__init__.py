"""Learn: policies trained in worlds drawn from a belief.

A task (`tasks/`) and worlds make an `environment`; `run.train` turns one into a folder with a policy, and `course.run`
judges it on robots that it has never met. Nothing here needs torch but `learner`, `vecenv` and what `run.train` does with them.
"""
