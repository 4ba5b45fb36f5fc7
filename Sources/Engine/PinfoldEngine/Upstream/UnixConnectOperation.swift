import Clocks
import EventLoop
import HTTPCore

/// Establishes one connection to a Unix socket. If as many wait to be accepted as its queue takes,
/// it tries again until the time is over: nothing tells when there is room.
final class UnixConnectOperation: EventHandler, TunnelOpening {
    /// How long it waits before it tries again: at first, and at most.
    private static let pauseMilliseconds: ClosedRange<Int64> = 5...100

    private let environment: Environment
    private let path: String
    /// Called once, unless the operation is cancelled; then released, because it may refer back.
    private var completion: ConnectOperation.Completion?
    private var pause = pauseMilliseconds.lowerBound
    private var end: Int64 = 0
    private let started = Clock.monotonicMicroseconds()
    /// Where it notes what it is doing.
    private let timeline: ConnectionTimeline

    init(
        environment: Environment, path: String, timeline: ConnectionTimeline,
        completion: @escaping ConnectOperation.Completion
    ) {
        self.environment = environment
        self.path = path
        self.timeline = timeline
        self.completion = completion
        timeline.enter(.connect, at: started)
    }

    /// Starts the operation, which the loop keeps alive until it ends.
    func start(timeoutMilliseconds: Int64) {
        do {
            try environment.loop.add(self)
        } catch {
            return environment.loop.afterTurn { self.finish(.failure(.connectFailed(error))) }
        }
        end = environment.loop.now + timeoutMilliseconds
        environment.trace("connecting", ["server": "\(UnixSocketPath.scheme)\(path)"])
        // The completion is never called from within `start`.
        environment.loop.afterTurn { self.proceed() }
    }

    func cancel() {
        guard completion != nil else { return }
        close()
    }

    override func deadlineReached() { proceed() }

    private func proceed() {
        guard completion != nil else { return }
        do throws(Errno) {
            let descriptor = try openSocket()
            let now = Clock.monotonicMicroseconds()
            timeline.finish(at: now)
            environment.metrics.record(
                .upstreamConnect, microseconds: UInt64(max(0, now - started)))
            finish(
                .success(
                    EstablishedConnection(
                        transport: Transport(descriptor: descriptor), endpoint: .unnamed)))
        } catch {
            guard error == .again else {
                return finish(
                    .failure(
                        error.isExhaustion
                            ? .gateway(.descriptorsExhausted) : .unixSocketFailed(error)),
                    .failed(error))
            }
            let left = end - environment.loop.now
            guard left > 0 else { return finish(.failure(.connectTimeout), .unanswered) }
            environment.loop.setDeadline(self, after: min(pause, left))
            pause = min(pause * 2, Self.pauseMilliseconds.upperBound)
        }
    }

    /// If descriptors have run out, tries again after idle clients were closed.
    private func openSocket() throws(Errno) -> Int32 {
        do throws(Errno) {
            return try environment.sockets.connect(toUnixSocket: path)
        } catch {
            guard error.isOutOfDescriptors, environment.host?.freeDescriptors() ?? false else {
                throw error
            }
            return try environment.sockets.connect(toUnixSocket: path)
        }
    }

    private func finish(
        _ result: Result<EstablishedConnection, ExchangeError>,
        _ outcome: FailedAttempts.Outcome = .unanswered
    ) {
        guard let completion else { return }
        close()
        if case .failure(let fault) = result {
            environment.countConnectFailure(fault)
            timeline.finish(at: Clock.monotonicMicroseconds())
        }
        completion(
            result.mapError {
                StreamError($0, FailedAttempts(unixSocket: path, outcome), by: timeline)
            })
    }

    private func close() {
        completion = nil
        environment.loop.remove(self)
    }
}

extension UpstreamPool {
    /// Connects to a server on a Unix socket.
    func connect(_ origin: Origin, toUnixSocket path: String, _ timeline: ConnectionTimeline) {
        var operation: UnixConnectOperation?
        operation = UnixConnectOperation(
            environment: environment, path: path, timeline: timeline
        ) { [unowned self] result in
            if let operation { operations[ObjectIdentifier(operation)] = nil }
            operation = nil
            connected(origin, result, timeline)
        }
        guard let operation else { return }
        operations[ObjectIdentifier(operation)] = operation
        operation.start(timeoutMilliseconds: origin.timeouts.connectMilliseconds)
    }
}

extension Environment {
    /// Counts a connection to a server that could not be made.
    func countConnectFailure(_ fault: ExchangeError) {
        switch fault {
        case .connectFailed(.connectionRefused), .unixSocketFailed(.connectionRefused):
            metrics.add(.upstreamConnectRefused)
        case .connectFailed(.timedOut), .connectTimeout: metrics.add(.upstreamConnectTimedOut)
        case .connectFailed(.hostUnreachable), .connectFailed(.networkUnreachable):
            metrics.add(.upstreamConnectUnreachable)
        case .connectFailed, .unixSocketFailed, .gateway(.descriptorsExhausted):
            metrics.add(.upstreamConnectFailedOtherwise)
        default: break
        }
    }
}
