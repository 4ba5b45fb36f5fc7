import PinfoldClient

/// How a call has ended.
enum Kind: Hashable, CustomStringConvertible {
    /// By a response of the 2xx class with the content that it must have.
    case right
    /// By a response whose content was not read to the end, as the caller wanted.
    case left
    /// By another status.
    case status(Int)
    /// By an error.
    case failed(ClientError.Reason)
    /// By something that must never be: content that is not the server's, an error of another type.
    case wrong(String)

    var description: String {
        switch self {
        case .right: "right"
        case .left: "left"
        case .status(let status): "\(status)"
        case .failed(let reason): reason.rawValue
        case .wrong(let what): "wrong: \(what)"
        }
    }

    /// By the way of a reason's name, for short tables.
    static let lost = Kind.failed(.connectionLost)
    static let bad = Kind.failed(.badResponse)
    static let late = Kind.failed(.timedOut)
    static let untrusted = Kind.failed(.secureConnectionFailed)
    static let cancelled = Kind.failed(.cancelled)
    static let invalidated = Kind.failed(.sessionInvalidated)
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct Generator: RandomNumberGenerator {
    private var state: UInt64

    /// - Parameter call: The number of a call: each has its own numbers, whatever runs beside it.
    init(seed: UInt64, call: Int) {
        state = seed &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(call) &* 0xD1B5_4A32_D192_ED03
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Whether something happens that happens so many times in a hundred.
    mutating func happens(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &self) < percent
    }
}
