import HTTP2
import PinfoldMetrics

// Why connections with HTTP/2 end, as it is counted.
extension WorkerCounter {
    /// - Parameter code: what the client is told.
    static func http2Ended(_ code: ErrorCode) -> Self {
        switch code {
        case .noError: .http2EndedNoError
        case .protocolError: .http2EndedProtocolError
        case .flowControlError: .http2EndedFlowControlError
        case .settingsTimeout: .http2EndedSettingsTimeout
        case .streamClosed: .http2EndedStreamClosed
        case .frameSizeError: .http2EndedFrameSizeError
        case .compressionError: .http2EndedCompressionError
        case .enhanceYourCalm: .http2EndedEnhanceYourCalm
        default: .http2EndedInternalError
        }
    }

    static func http2Abuse(_ cause: Abuse) -> Self {
        switch cause {
        case .resetReceived: .http2AbuseResetsReceived
        case .resetCaused: .http2AbuseResetsCaused
        case .malformedMessage: .http2AbuseMalformedMessages
        case .fieldsRefused: .http2AbuseFieldsRefused
        case .streamRefused: .http2AbuseStreamsRefused
        case .discardedFields: .http2AbuseDiscardedFields
        case .continuation: .http2AbuseContinuations
        case .emptyContinuation: .http2AbuseEmptyContinuations
        case .emptyData: .http2AbuseEmptyData
        case .tinyData: .http2AbuseTinyData
        case .padding: .http2AbusePadding
        case .ping: .http2AbusePings
        case .settings: .http2AbuseSettings
        case .priority: .http2AbusePriorities
        case .windowUpdate: .http2AbuseWindowUpdates
        case .tinyWindow: .http2AbuseTinyWindows
        case .unknownFrame: .http2AbuseUnknownFrames
        case .lateFrame: .http2AbuseLateFrames
        case .goaway: .http2AbuseGoaways
        }
    }
}
