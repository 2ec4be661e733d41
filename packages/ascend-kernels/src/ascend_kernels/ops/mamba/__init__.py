"""mamba"""
