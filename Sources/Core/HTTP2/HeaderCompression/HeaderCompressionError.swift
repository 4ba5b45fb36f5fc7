/// Why a header block cannot be decoded (RFC 7541).
///
/// The two ends no longer have the same table, so the connection cannot be used further: an error
/// of type COMPRESSION_ERROR (RFC 9113 §4.3). One that only expands too much is an attack.
public enum HeaderCompressionError: UInt8, Error, Sendable, CaseIterable {
    case truncatedBlock
    case integerTooLarge
    case indexZero
    case indexOutOfRange
    case endOfStringSymbol
    case malformedPadding
    case tableSizeTooLarge
    case lateTableSize
    case tableSizeMissing
    case expandsTooMuch

    /// The reason as a token, for logs and metrics.
    public var reason: StaticString {
        switch self {
        case .truncatedBlock: "truncated-header-block"
        case .integerTooLarge: "header-integer-too-large"
        case .indexZero: "header-index-zero"
        case .indexOutOfRange: "header-index-out-of-range"
        case .endOfStringSymbol: "huffman-end-of-string"
        case .malformedPadding: "huffman-padding"
        case .tableSizeTooLarge: "header-table-size-too-large"
        case .lateTableSize: "header-table-size-late"
        case .tableSizeMissing: "header-table-size-missing"
        case .expandsTooMuch: "header-block-expands"
        }
    }

    /// The reason as a sentence without full stop.
    public var explanation: StaticString {
        switch self {
        case .truncatedBlock: "a header block ends within a field"
        case .integerTooLarge: "a number in a header block exceeds 2^28"
        case .indexZero: "a header block refers to index 0"
        case .indexOutOfRange: "a header block refers to an index that is not in the table"
        case .endOfStringSymbol: "a Huffman-coded string contains the end-of-string symbol"
        case .malformedPadding:
            "a Huffman-coded string ends in more than 7 bits of padding, or in bits that are not 1"
        case .tableSizeTooLarge: "a header block sets a larger table size than was allowed"
        case .lateTableSize: "a header block changes the table size after its first field"
        case .tableSizeMissing:
            "a header block does not begin with the smaller table size that was demanded"
        case .expandsTooMuch: "a header block has more than 1 MiB of literal fields"
        }
    }
}
