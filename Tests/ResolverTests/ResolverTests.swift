// ResolverTests
