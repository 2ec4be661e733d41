"""Checkpoints: conversion, cache, SmolLM2."""
