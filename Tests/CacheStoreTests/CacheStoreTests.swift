// CacheStoreTests
