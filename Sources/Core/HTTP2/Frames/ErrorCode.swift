/// Why a stream or a connection ends (RFC 9113 §7). Any value may arrive; one that is unknown has
/// no special effect.
public struct ErrorCode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt32

    @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Nothing went wrong.
    @inlinable public static var noError: ErrorCode { ErrorCode(rawValue: 0x0) }
    @inlinable public static var protocolError: ErrorCode { ErrorCode(rawValue: 0x1) }
    @inlinable public static var internalError: ErrorCode { ErrorCode(rawValue: 0x2) }
    /// The peer was sent more than it allowed.
    @inlinable public static var flowControlError: ErrorCode { ErrorCode(rawValue: 0x3) }
    /// SETTINGS were not acknowledged in time.
    @inlinable public static var settingsTimeout: ErrorCode { ErrorCode(rawValue: 0x4) }
    /// A frame on a stream whose sender had ended it.
    @inlinable public static var streamClosed: ErrorCode { ErrorCode(rawValue: 0x5) }
    @inlinable public static var frameSizeError: ErrorCode { ErrorCode(rawValue: 0x6) }
    /// Nothing was done with the request: it may be sent again.
    @inlinable public static var refusedStream: ErrorCode { ErrorCode(rawValue: 0x7) }
    /// The stream is not needed any more.
    @inlinable public static var cancel: ErrorCode { ErrorCode(rawValue: 0x8) }
    /// The compression context cannot be maintained.
    @inlinable public static var compressionError: ErrorCode { ErrorCode(rawValue: 0x9) }
    /// The connection established by CONNECT was reset or closed.
    @inlinable public static var connectError: ErrorCode { ErrorCode(rawValue: 0xA) }
    /// The peer's behaviour may cause excessive load.
    @inlinable public static var enhanceYourCalm: ErrorCode { ErrorCode(rawValue: 0xB) }
    @inlinable public static var inadequateSecurity: ErrorCode { ErrorCode(rawValue: 0xC) }
    /// The request must be sent over HTTP/1.1.
    @inlinable public static var http11Required: ErrorCode { ErrorCode(rawValue: 0xD) }

    /// The name in the RFC, for logs; `nil` if the code is unknown.
    public var name: StaticString? {
        switch rawValue {
        case 0x0: "NO_ERROR"
        case 0x1: "PROTOCOL_ERROR"
        case 0x2: "INTERNAL_ERROR"
        case 0x3: "FLOW_CONTROL_ERROR"
        case 0x4: "SETTINGS_TIMEOUT"
        case 0x5: "STREAM_CLOSED"
        case 0x6: "FRAME_SIZE_ERROR"
        case 0x7: "REFUSED_STREAM"
        case 0x8: "CANCEL"
        case 0x9: "COMPRESSION_ERROR"
        case 0xA: "CONNECT_ERROR"
        case 0xB: "ENHANCE_YOUR_CALM"
        case 0xC: "INADEQUATE_SECURITY"
        case 0xD: "HTTP_1_1_REQUIRED"
        default: nil
        }
    }

    /// Whether the request must be sent over HTTP/1.1.
    public var asksForHTTP1: Bool { rawValue == Self.http11Required.rawValue }

    /// Whether a stream that was reset for it has not been processed, if nothing of a response has
    /// arrived.
    public var leavesUnprocessed: Bool { self == .refusedStream || asksForHTTP1 }

    /// The name, or the number of a code that has none.
    public var text: String { name.map { "\($0)" } ?? "error code \(rawValue)" }
}
