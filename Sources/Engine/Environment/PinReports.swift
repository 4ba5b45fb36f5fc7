import Locking

/// Which servers report-only pinsets would have refused, so that each is told of once in a while
/// and not at every handshake; all of them are counted.
///
/// Lock: one mutex, held for one dictionary operation per handshake that is reported.
package final class PinReports: Sendable {
    /// What is told apart.
    package struct Subject: Hashable, Sendable {
        package var pinset: String
        package var host: String
        package var port: UInt16

        package init(pinset: String, host: String, port: UInt16) {
            self.pinset = pinset
            self.host = host
            self.port = port
        }
    }

    private struct Told {
        /// When it was told of last, in seconds.
        var at: Int64
        /// How often it happened since.
        var silent: UInt64
    }

    /// Between two lines about one subject, in seconds.
    package static let periodSeconds: Int64 = 3600
    /// Subjects that are told apart at a time; of further ones none is told of.
    package static let capacity = 1024

    private let told = Locked<[Subject: Told]>([:])

    package init() {}

    /// Notes that a server was let pass.
    ///
    /// - Parameter now: seconds of a clock that never goes back.
    /// - Returns: how often it happened without being told since the last time; nil: it is not to
    ///   be told of now.
    package func note(_ subject: Subject, now: Int64) -> UInt64? {
        told.withLock { told in
            if let last = told[subject], now - last.at < Self.periodSeconds {
                told[subject]?.silent += 1
                return nil
            }
            let silent = told[subject]?.silent ?? 0
            if told[subject] == nil, told.count >= Self.capacity {
                told = told.filter { now - $0.value.at < Self.periodSeconds }
                guard told.count < Self.capacity else { return nil }
            }
            told[subject] = Told(at: now, silent: 0)
            return silent
        }
    }
}
