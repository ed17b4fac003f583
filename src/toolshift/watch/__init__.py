"""Watches a stream of calls for drift while an agent works, in constant memory.

watch.py               what drifts in a stream
sequential.py          has a rate gone up? with a stated rate of false alarms
successors.py          which of today's tools stands for a locked one, to keep what was learned
query_mix_monitor.py   has the mix of what users ask moved?
webhook.py             alarms to a webhook
metrics.py             what is watched, for Prometheus
"""
