/// The counts of a pin.
public struct PinMetrics: Sendable, Equatable {
    /// The label value for pins without a counter of their own.
    static let otherLabel = "other"
    /// The number of characters of a digest in the label: base64 or hexadecimal, at least 48 bits.
    private static let labelCharacters = 12
    private static let keyPrefix = "sha256/"

    /// The pin as it is reported, ready to paste; `nil` for all pins without a counter of their
    /// own.
    public var text: String?
    public var matches: UInt64

    /// The count of a pin, or of several.
    public init(text: String?, matches: UInt64) {
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
