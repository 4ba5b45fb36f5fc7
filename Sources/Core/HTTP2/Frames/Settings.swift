/// A setting (RFC 9113 §6.5.2, RFC 8441 §3, RFC 9218 §2.1). Any value may arrive: unknown settings
/// are ignored.
public struct SettingID: RawRepresentable, Equatable, Sendable {
    public let rawValue: UInt16

    @inlinable public init(rawValue: UInt16) { self.rawValue = rawValue }

    @inlinable public static var headerTableSize: SettingID { SettingID(rawValue: 1) }
    @inlinable public static var enablePush: SettingID { SettingID(rawValue: 2) }
    @inlinable public static var maxConcurrentStreams: SettingID { SettingID(rawValue: 3) }
    @inlinable public static var initialWindowSize: SettingID { SettingID(rawValue: 4) }
    @inlinable public static var maxFrameSize: SettingID { SettingID(rawValue: 5) }
    @inlinable public static var maxHeaderListSize: SettingID { SettingID(rawValue: 6) }
    @inlinable public static var enableConnectProtocol: SettingID { SettingID(rawValue: 8) }
    @inlinable public static var noRFC7540Priorities: SettingID { SettingID(rawValue: 9) }
}

/// What the peer has said in SETTINGS; at first the values that the RFC gives to a peer that has
/// said nothing.
public struct PeerSettings: Equatable, Sendable {
    /// The default window (RFC 9113 §6.9.2).
    public static let initialWindow: Int32 = 65_535
    /// The greatest window (RFC 9113 §6.9.1).
    public static let greatestWindow = Int32.max
    /// The range of a frame's greatest payload (RFC 9113 §6.5.2).
    public static let frameSizes = 16_384...FrameHeader.greatestLength

    /// The size of the table that the peer decodes fields with, in bytes.
    public internal(set) var headerTableSize: UInt32 = 4096
    /// The least size among those of the last SETTINGS frame: an encoder must have kept to that for
    /// a moment, too (RFC 7541 §4.2).
    public internal(set) var leastHeaderTableSize: UInt32 = 4096
    /// How many streams this side may have open at a time; no limit if the peer has said none.
    public internal(set) var maxConcurrentStreams = UInt32.max
    /// The window of every new stream towards the peer, in bytes.
    public internal(set) var initialWindowSize = PeerSettings.initialWindow
    /// The size of the greatest payload that the peer accepts in a frame, in bytes.
    public internal(set) var maxFrameSize = PeerSettings.frameSizes.lowerBound
    /// The greatest field section that the peer is prepared to accept, as RFC 9113 §10.5.1 counts
    /// it, in bytes; advisory.
    public internal(set) var maxHeaderListSize = UInt32.max
    /// Whether a server takes extended CONNECT (RFC 8441).
    public internal(set) var enablesConnectProtocol = false
    /// Whether the peer does without the priorities of RFC 7540, as it said in its first SETTINGS.
    public internal(set) var hasNoRFC7540Priorities = false

    public init() {}

    /// Takes one setting.
    ///
    /// - Parameters:
    ///   - isFirst: whether it is in the peer's first SETTINGS frame.
    ///   - role: what the recipient is.
    /// - Throws: the error that the connection ends with, if the value is not allowed.
    mutating func take(
        _ id: SettingID, _ value: UInt32, isFirst: Bool, role: HTTP2Connection.Role
    ) throws(ConnectionReason) {
        switch id {
        case .headerTableSize:
            headerTableSize = value
            leastHeaderTableSize = min(leastHeaderTableSize, value)
        case .enablePush:
            guard value == 0 || value == 1 && role == .server else { throw .badEnablePush }
        case .maxConcurrentStreams: maxConcurrentStreams = value
        case .initialWindowSize:
            guard let size = Int32(exactly: value) else { throw .badInitialWindow }
            initialWindowSize = size
        case .maxFrameSize:
            guard PeerSettings.frameSizes.contains(Int(value)) else { throw .badMaxFrameSize }
            maxFrameSize = Int(value)
        case .maxHeaderListSize: maxHeaderListSize = value
        case .enableConnectProtocol:
            guard value == 1 || value == 0 && !enablesConnectProtocol else {
                throw .badEnableConnectProtocol
            }
            enablesConnectProtocol = value == 1
        case .noRFC7540Priorities:
            guard value <= 1, isFirst || (value == 1) == hasNoRFC7540Priorities else {
                throw .badNoRFC7540Priorities
            }
            hasNoRFC7540Priorities = value == 1
        default: break
        }
    }
}
