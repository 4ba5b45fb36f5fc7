import CLinux
import EngineTestSupport
import EventLoop

@testable import PinfoldEngine

/// A relay, and the far ends of its connections.
final class ScriptedRelay {
    struct Ending: Equatable {
        var toUpstream: UInt64
        var toClient: UInt64
        var wasIdle = false
    }

    let client: Peer
    let upstream: Peer
    private let signals = BrokenPipeSignals()
    private(set) var endings: [Ending] = []

    /// - Parameters:
    ///   - early: what each side has already sent; `pending`: what must still be sent to the
    ///     client.
    ///   - descriptor: replaces the upstream's.
    init(
        _ still: StillEngine, idleMilliseconds: Int64 = 60_000, earlyFromClient: String = "",
        earlyFromUpstream: String = "", pendingForClient: String = "",
        upstreamDescriptor descriptor: Int32? = nil
    ) throws {
        let (nearClient, client) = try Peer.pair()
        let (nearUpstream, upstream) = try Peer.pair()
        (self.client, self.upstream) = (client, upstream)
        if descriptor != nil { Descriptors.close(nearUpstream) }
        let environment = still.environment
        var pending = OutputQueue()
        let waiting = ScriptedConsumer.buffer(pendingForClient, environment)
        pending.append(waiting.readable, owner: waiting)
        let relay = Relay(
            environment: environment, idleMilliseconds: idleMilliseconds
        ) { [weak self] in
            self?.endings.append(Ending(toUpstream: $0, toClient: $1, wasIdle: $2 == .idle))
        }
        do {
            try relay.start(
                client: Transport(descriptor: nearClient),
                upstream: Transport(descriptor: descriptor ?? nearUpstream),
                earlyFromClient: ScriptedConsumer.buffer(earlyFromClient, environment),
                earlyFromUpstream: ScriptedConsumer.buffer(earlyFromUpstream, environment),
                pendingForClient: pending)
        } catch {
            // It still belongs to the caller.
            Descriptors.close(nearClient)
            throw error
        }
    }
}

/// Blocks SIGPIPE in its thread for as long as it lives: splice(2) has no flag like MSG_NOSIGNAL.
/// The gateway blocks it permanently; here, other tests depend on its disposition.
private final class BrokenPipeSignals {
    private var before = sigset_t()

    private static var brokenPipe: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        return signals
    }

    init() {
        var signals = Self.brokenPipe
        pthread_sigmask(SIG_BLOCK, &signals, &before)
    }

    deinit {
        var signals = Self.brokenPipe
        // A pending signal would be delivered now.
        var wait = timespec()
        while sigtimedwait(&signals, nil, &wait) == SIGPIPE {}
        if sigismember(&before, SIGPIPE) == 0 { pthread_sigmask(SIG_UNBLOCK, &signals, nil) }
    }
}
