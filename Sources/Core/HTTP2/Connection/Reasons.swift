/// Why a connection ends with an error (RFC 9113 §5.4.1).
public enum ConnectionReason: UInt8, Error, CaseIterable, Sendable {
    // The beginning (§3.4).
    case badPreface
    case settingsMissing
    // Frames (§4).
    case frameTooLarge
    case badFrameLength
    case paddingTooLong
    case streamIDMissing
    case streamIDUnexpected
    case fieldBlockInterrupted
    case continuationUnexpected
    case fieldBlockTooLarge
    case headerCompression
    // Streams (§5).
    case badStreamID
    case frameOnIdleStream
    case frameOnClosedStream
    case streamDependsOnItself
    // Settings (§6.5.2).
    case badEnablePush
    case badInitialWindow
    case badMaxFrameSize
    case badEnableConnectProtocol
    case badNoRFC7540Priorities
    case settingsNotAcknowledged
    // Flow control (§6.9).
    case windowExceeded
    case windowTooLarge
    case zeroWindowUpdate
    // The rest.
    case pushPromise
    case priorityUpdateFromServer
    case goawayIncreased
    case unanswered
    case abuse
    case internalError

    /// The code that the peer is told.
    public var code: ErrorCode {
        switch self {
        case .badPreface, .settingsMissing, .paddingTooLong, .streamIDMissing,
            .streamIDUnexpected, .fieldBlockInterrupted, .continuationUnexpected, .badStreamID,
            .frameOnIdleStream, .streamDependsOnItself, .badEnablePush, .badMaxFrameSize,
            .badEnableConnectProtocol, .badNoRFC7540Priorities, .zeroWindowUpdate, .pushPromise,
            .priorityUpdateFromServer, .goawayIncreased:
            .protocolError
        case .frameTooLarge, .badFrameLength: .frameSizeError
        case .headerCompression: .compressionError
        case .frameOnClosedStream: .streamClosed
        case .badInitialWindow, .windowExceeded, .windowTooLarge: .flowControlError
        case .settingsNotAcknowledged: .settingsTimeout
        case .fieldBlockTooLarge, .abuse: .enhanceYourCalm
        case .unanswered: .noError
        case .internalError: .internalError
        }
    }

    /// The reason as a token, for logs and metrics.
    public var reason: StaticString {
        switch self {
        case .badPreface: "bad-preface"
        case .settingsMissing: "settings-missing"
        case .frameTooLarge: "frame-too-large"
        case .badFrameLength: "bad-frame-length"
        case .paddingTooLong: "padding-too-long"
        case .streamIDMissing: "stream-id-missing"
        case .streamIDUnexpected: "stream-id-unexpected"
        case .fieldBlockInterrupted: "field-block-interrupted"
        case .continuationUnexpected: "continuation-unexpected"
        case .fieldBlockTooLarge: "field-block-too-large"
        case .headerCompression: "header-compression"
        case .badStreamID: "bad-stream-id"
        case .frameOnIdleStream: "frame-on-idle-stream"
        case .frameOnClosedStream: "frame-on-closed-stream"
        case .streamDependsOnItself: "stream-depends-on-itself"
        case .badEnablePush: "bad-enable-push"
        case .badInitialWindow: "bad-initial-window"
        case .badMaxFrameSize: "bad-max-frame-size"
        case .badEnableConnectProtocol: "bad-enable-connect-protocol"
        case .badNoRFC7540Priorities: "bad-no-rfc7540-priorities"
        case .settingsNotAcknowledged: "settings-not-acknowledged"
        case .windowExceeded: "window-exceeded"
        case .windowTooLarge: "window-too-large"
        case .zeroWindowUpdate: "zero-window-update"
        case .pushPromise: "push-promise"
        case .priorityUpdateFromServer: "priority-update-from-server"
        case .goawayIncreased: "goaway-increased"
        case .unanswered: "unanswered"
        case .abuse: "abuse"
        case .internalError: "internal-error"
        }
    }

    /// The reason as a sentence without full stop, for logs and the text of GOAWAY.
    public var explanation: StaticString {
        switch self {
        case .badPreface: "the connection does not begin with the preface of HTTP/2"
        case .settingsMissing: "the first frame is not SETTINGS"
        case .frameTooLarge: "a frame is larger than SETTINGS_MAX_FRAME_SIZE"
        case .badFrameLength: "a frame's length is not one that its type allows"
        case .paddingTooLong: "a frame's padding is longer than the frame"
        case .streamIDMissing: "a frame of a stream has the stream identifier 0"
        case .streamIDUnexpected: "a frame of the connection has a stream identifier other than 0"
        case .fieldBlockInterrupted: "another frame is between the frames of a field block"
        case .continuationUnexpected: "a CONTINUATION frame continues no field block"
        case .fieldBlockTooLarge: "a field block is larger than the limit"
        case .headerCompression: "a field block cannot be decoded"
        case .badStreamID: "a stream is opened with an identifier that may not be used"
        case .frameOnIdleStream: "a frame is on a stream that has not been opened"
        case .frameOnClosedStream: "HEADERS are on a stream that is closed"
        case .streamDependsOnItself: "a stream depends on itself"
        case .badEnablePush: "SETTINGS_ENABLE_PUSH has a value that is not allowed"
        case .badInitialWindow: "SETTINGS_INITIAL_WINDOW_SIZE exceeds 2^31 - 1"
        case .badMaxFrameSize: "SETTINGS_MAX_FRAME_SIZE is not between 2^14 and 2^24 - 1"
        case .badEnableConnectProtocol:
            "SETTINGS_ENABLE_CONNECT_PROTOCOL is neither 0 nor 1, or is withdrawn"
        case .badNoRFC7540Priorities:
            "SETTINGS_NO_RFC7540_PRIORITIES is neither 0 nor 1, or is changed"
        case .settingsNotAcknowledged: "SETTINGS were not acknowledged in time"
        case .windowExceeded: "more content was sent than the connection's window allows"
        case .windowTooLarge: "a flow-control window exceeds 2^31 - 1"
        case .zeroWindowUpdate: "a WINDOW_UPDATE frame has the increment 0"
        case .pushPromise: "PUSH_PROMISE was sent, which is not allowed"
        case .priorityUpdateFromServer: "PRIORITY_UPDATE was sent by a server"
        case .goawayIncreased: "GOAWAY names a higher stream than the one before"
        case .unanswered: "PING was not answered in time"
        case .abuse: "too much that costs work and brings nothing"
        case .internalError: "the connection cannot be continued"
        }
    }
}

/// Why a stream ends with an error that was found here (RFC 9113 §5.4.2).
public enum StreamReason: UInt8, Error, CaseIterable, Sendable {
    /// A frame after the peer had ended its direction.
    case frameAfterEnd
    case windowExceeded
    case windowTooLarge
    case zeroWindowUpdate
    case streamDependsOnItself
    case badPriorityLength
    /// HEADERS after the message's head that do not end the stream.
    case trailersWithoutEnd
    /// DATA before the head of a response.
    case contentBeforeHead
    case contentTooLong
    case contentTooShort

    /// The code that the peer is told.
    public var code: ErrorCode {
        switch self {
        case .frameAfterEnd: .streamClosed
        case .windowExceeded, .windowTooLarge: .flowControlError
        case .badPriorityLength: .frameSizeError
        case .zeroWindowUpdate, .streamDependsOnItself, .trailersWithoutEnd, .contentBeforeHead,
            .contentTooLong, .contentTooShort:
            .protocolError
        }
    }

    /// The reason as a token, for logs, metrics and error bodies.
    public var reason: StaticString {
        switch self {
        case .frameAfterEnd: "frame-after-end"
        case .windowExceeded: "stream-window-exceeded"
        case .windowTooLarge: "stream-window-too-large"
        case .zeroWindowUpdate: "stream-zero-window-update"
        case .streamDependsOnItself: "stream-depends-on-itself"
        case .badPriorityLength: "bad-priority-length"
        case .trailersWithoutEnd: "trailers-without-end"
        case .contentBeforeHead: "content-before-head"
        case .contentTooLong: "content-longer-than-content-length"
        case .contentTooShort: "content-shorter-than-content-length"
        }
    }

    /// The reason as a sentence without full stop.
    public var explanation: StaticString {
        switch self {
        case .frameAfterEnd: "a frame follows the end of its stream"
        case .windowExceeded: "more content was sent than the stream's window allows"
        case .windowTooLarge: "the stream's flow-control window exceeds 2^31 - 1"
        case .zeroWindowUpdate: "a WINDOW_UPDATE frame of the stream has the increment 0"
        case .streamDependsOnItself: "the stream depends on itself"
        case .badPriorityLength: "a PRIORITY frame's length is not 5"
        case .trailersWithoutEnd: "the trailers do not end the stream"
        case .contentBeforeHead: "content precedes the head of the response"
        case .contentTooLong: "there is more content than Content-Length says"
        case .contentTooShort: "there is less content than Content-Length says"
        }
    }
}
