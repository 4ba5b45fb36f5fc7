// PinningTests
