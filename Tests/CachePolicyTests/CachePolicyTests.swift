// CachePolicyTests
