// ActivityTests
