/// How much a peer may send, on a stream or a connection (RFC 9113 §5.2, §6.9).
///
/// Every byte of the window's size is in one of three places: the peer may still send it
/// (`available`), it has arrived and waits to be taken (`waiting`), or it has been taken and will
/// be announced again (`credit`). So at most `size` bytes can ever be waiting.
struct ReceiveWindow: BitwiseCopyable {
    var available: Int32
    var waiting: Int32 = 0
    var credit: Int32 = 0

    init(_ size: Int32) { available = size }

    var size: Int32 { available &+ waiting &+ credit }

    /// Content of this many bytes, which were available, has begun to arrive.
    @inline(__always)
    mutating func arrived(_ count: Int32) {
        available &-= count
        waiting &+= count
    }

    /// Bytes that were waiting have been taken. Returns by how many bytes the peer's window is to
    /// be enlarged now: none, until half of it is used up, so that an announcement is worth a
    /// frame.
    ///
    /// - Parameter desired: the size that the window should have; a window never shrinks.
    @inline(__always)
    mutating func taken(_ count: Int32, desired: Int32) -> Int32 {
        waiting &-= count
        credit &+= count
        assert(waiting >= 0)
        let size = size
        guard credit >= size &- credit else { return 0 }
        let increment = credit &+ max(0, desired &- size)
        credit = 0
        available &+= increment
        return increment
    }
}

/// How large the windows should be: twice what arrives in the time that a PING needs there and
/// back, so that a sender never has to wait for an announcement, and within the limits.
///
/// A measurement begins when a good part of a window has arrived, so never for small content, and
/// ends with the answer to its PING. If two thirds of a window have arrived meanwhile, the window
/// was too small, or nearly so.
struct WindowGrowth {
    /// After a measurement that showed no need, the next one begins so much later.
    static let pauseMilliseconds: Int64 = 100

    private(set) var stream: Int32
    private(set) var connection: Int32
    private let greatestStream: Int32
    private let greatestConnection: Int32
    /// Bytes of content since the measurement began, or since the last one ended.
    private var arrived = 0
    private(set) var isMeasuring = false
    private var notBefore = Int64.min

    init(_ limits: HTTP2Limits) {
        stream = limits.streamWindow
        connection = limits.connectionWindow
        greatestStream = limits.greatestStreamWindow
        greatestConnection = limits.greatestConnectionWindow
    }

    /// Content has arrived. Returns true if a measurement begins: PING must be sent.
    @inline(__always)
    mutating func arrived(_ count: Int, now: Int64) -> Bool {
        arrived &+= count
        guard !isMeasuring, arrived >= Int(stream / 4) else { return false }
        return begin(now: now)
    }

    @inline(never)
    private mutating func begin(now: Int64) -> Bool {
        guard stream < greatestStream || connection < greatestConnection, now >= notBefore else {
            arrived = 0
            return false
        }
        isMeasuring = true
        arrived = 0
        return true
    }

    /// The PING has been answered.
    mutating func measured(now: Int64) {
        guard isMeasuring else { return }
        isMeasuring = false
        let sample = arrived
        arrived = 0
        var hasGrown = false
        func grow(_ size: inout Int32, atMost greatest: Int32) {
            guard size < greatest, sample >= Int(size) / 3 * 2 else { return }
            size = Int32(clamping: min(Int(greatest), max(sample * 2, Int(size))))
            hasGrown = true
        }
        grow(&stream, atMost: greatestStream)
        grow(&connection, atMost: greatestConnection)
        // A stream's window is of no use beyond the connection's.
        connection = max(connection, min(stream, greatestConnection))
        if !hasGrown { notBefore = now + WindowGrowth.pauseMilliseconds }
    }
}
