"""codegen.pto"""
