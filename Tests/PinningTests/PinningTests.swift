import Testing

@testable import Pinning
