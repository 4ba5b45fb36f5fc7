// CachePolicy
