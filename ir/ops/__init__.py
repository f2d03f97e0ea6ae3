"""ir.ops"""
