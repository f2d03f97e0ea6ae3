"""rules.targets"""
