"""A made-up payment service: the world outside, with its bad days.

It knows nothing of Django. Every other call fails, in the worst way: the card is
charged, and the answer gets lost. One customer's bank does not answer at all until
somebody repairs it. Both are what real services do, and what retries are for.
"""
