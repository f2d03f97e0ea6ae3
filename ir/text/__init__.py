"""ir.text"""
