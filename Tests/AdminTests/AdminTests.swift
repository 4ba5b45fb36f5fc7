// AdminTests
