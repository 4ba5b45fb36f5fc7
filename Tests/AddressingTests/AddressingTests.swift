// AddressingTests
