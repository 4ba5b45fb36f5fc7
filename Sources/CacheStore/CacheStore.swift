// CacheStore
