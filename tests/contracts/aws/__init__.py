"""Amazon's services, by Amazon's own clients."""
