"""Recipes: what composite operations become, as rules with a stated error bound.

``terms.py`` builds patterns, ``sincos.py`` holds the recipes of sine and cosine. Every recipe is one rule; adding one
is one more call of ``recipe`` (see ``docs/recipes.md``).
"""
