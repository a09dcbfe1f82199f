"""A trained model as an HTTP service (extra ``serve``): `metarank serve MODEL`.

A request's way: `app` admits it and hands it to a thread, `schema` and `instances` read it, `answers` asks
the model and shapes the reply. `reload` holds the model and watches its folder. `run` hands the application
to uvicorn. `page` is what a person sees, `metrics` what Prometheus reads.
"""
