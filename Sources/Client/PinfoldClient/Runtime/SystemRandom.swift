/// The system's random numbers, which no one can predict.
struct SystemRandom: RandomNumberGenerator {
    // ThreadSanitizer follows `inout` arguments by their address, and what passes for that of an
    // empty value, as `SystemRandomNumberGenerator` is, crashes it. An existential has one.
    private var system: any RandomNumberGenerator = SystemRandomNumberGenerator()

    mutating func next() -> UInt64 { system.next() }
}
