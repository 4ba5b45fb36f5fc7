// HTTPCoreTests
