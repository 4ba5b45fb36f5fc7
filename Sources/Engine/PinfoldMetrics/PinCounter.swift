import Synchronization

/// How often servers' chains had one pin of one pinset. Shared by all threads: a handshake adds to
/// it, which is not often enough to need a counter for each of them.
package final class PinCounter: Sendable {
    private let matches = Atomic<UInt64>(0)

    package init() {}

    /// Counts a judgement of a server whose chain had it.
    package func add() { matches.wrappingAdd(1, ordering: .relaxed) }

    /// How many there have been.
    package var value: UInt64 { matches.load(ordering: .relaxed) }
}

/// What is counted of a pin.
package struct PinFigure: Sendable, Equatable {
    /// The label value of what is not told apart.
    static let otherLabel = "other"
    /// Characters of a digest that the label has: of base64 or hexadecimal, 48 bits at least.
    private static let labelCharacters = 12
    private static let keyPrefix = "sha256/"

    /// The pin as it is reported, ready to paste; nil: all that are not told apart.
    package var text: String?
    package var matches: UInt64

    /// What is counted of a pin, or of several.
    package init(text: String?, matches: UInt64) {
        self.text = text
        self.matches = matches
    }

    /// The beginning of the pin, long enough to find it in the configuration.
    var label: String {
        guard let text else { return Self.otherLabel }
        let prefix = text.hasPrefix(Self.keyPrefix) ? Self.keyPrefix.count : 0
        return String(text.prefix(prefix + Self.labelCharacters))
    }
}
