/// The kernel's view of how far a socket's bytes have got.
public struct Delivery: Equatable, Sendable {
    /// The total number of bytes that the peer has acknowledged.
    public var acknowledgedBytes: UInt64
    /// How long ago the peer last acknowledged anything, even if nothing new: a peer that does not
    /// read still answers the kernel's probes.
    public var ageMilliseconds: Int64

    public init(acknowledgedBytes: UInt64, ageMilliseconds: Int64) {
        self.acknowledgedBytes = acknowledgedBytes
        self.ageMilliseconds = ageMilliseconds
    }
}

/// When a peer last accepted data, as far as periodic checks can tell.
///
/// A socket is reported writable only when a third of its buffer, which may be megabytes, is free
/// again; a peer that reads steadily can take longer than a timeout for that.
public struct SendProgress {
    private var acknowledgedBytes = UInt64.max
    private var lookedAt: Int64 = 0

    public init() {}

    /// Returns the latest time at which the peer can have accepted data since the previous check,
    /// in the loop's milliseconds, or `nil` if it has accepted nothing. The first check counts as
    /// progress, since nothing is known yet.
    public mutating func look(_ delivery: Delivery?, at now: Int64) -> Int64? {
        guard let delivery else { return nil }
        defer { lookedAt = now }
        guard delivery.acknowledgedBytes != acknowledgedBytes else { return nil }
        acknowledgedBytes = delivery.acknowledgedBytes
        return max(lookedAt, now - delivery.ageMilliseconds)
    }
}

/// A timeout for lack of progress, which fires after its time, and at most a quarter later.
///
///     noted ──► checked every quarter: noted again on progress ──► whole time passed: expired
///
/// Noting progress costs a store. Progress that only the kernel sees (`SendProgress`) is known to
/// the quarter in which it happened.
public struct IdleTime {
    private var last: Int64 = 0

    public init() {}

    /// Notes progress at this time, in the loop's milliseconds.
    @inline(__always)
    public mutating func note(at time: Int64) { if time > last { last = time } }

    /// The time left of `milliseconds`, or `nil` if none is left.
    public func remaining(of milliseconds: Int64, at now: Int64) -> Int64? {
        let left = last + milliseconds - now
        return left > 0 ? left : nil
    }

    /// The time until the first or next check, or `nil` if the time is over.
    public func nextCheck(of milliseconds: Int64, at now: Int64) -> Int64? {
        remaining(of: milliseconds, at: now).map { min($0, Self.firstLook(of: milliseconds)) }
    }

    /// The time from progress to the first check.
    public static func firstLook(of milliseconds: Int64) -> Int64 { max(1, milliseconds / 4) }
}
