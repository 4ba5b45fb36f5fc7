/// The system's cryptographically secure random number generator.
struct SystemRandom: RandomNumberGenerator {
    // ThreadSanitizer tracks `inout` arguments by their address, and crashes on the address of an
    // empty value such as `SystemRandomNumberGenerator`. An existential has a real address.
    private var system: any RandomNumberGenerator = SystemRandomNumberGenerator()

    mutating func next() -> UInt64 { system.next() }
}
