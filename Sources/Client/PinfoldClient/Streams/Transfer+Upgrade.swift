import EventLoop
import HTTPTypes
import PinfoldEngine

// A transfer whose response switches to another protocol. It lasts until either side closes the
// connection.
extension Transfer {
    package var takesProtocols: Bool { request.stream?.output != nil }

    package func switchProtocols(
        after head: consuming HeadDraft, to server: UpstreamHandover
    ) {
        guard let output = request.stream?.output, let exchange else {
            _ = head.finished()
            server.transport.close()
            server.tunnel?.ended(isBroken: true)
            return
        }
        moved()
        times.firstByte = microseconds
        noteConnection(of: exchange)
        let upgraded = UpgradedTransfer(server, of: self, sending: output)
        self.upgraded = upgraded
        guard let fields = head.finished() else {
            response.failure = ClientError(.response(.headTooLarge))
            return
        }
        do throws(Errno) { try upgraded.start() } catch {
            response.failure = ClientError(.outOfResources, "the loop is full: \(error)")
            return
        }
        setHead(session.fieldLineCache.fields(of: fields.readable, includesEngineFields: false))
        if let leftover = server.leftover, !leftover.isEmpty {
            times.receivedBytes += Int64(leftover.count)
            response.parts.append(Array(leftover.readable))
        }
        deliver()
        session.leavesQueue(self)
        if let stream = request.stream { continueAsStream(stream) }
    }

    /// Closes the connection, if it has switched protocols.
    func endUpgrade() {
        guard let upgraded else { return }
        upgraded.close()
        request.stream?.output?.close()
    }

    /// Handles the end of the server's direction, or of a broken connection, with an error.
    func upgradeIsOver(_ error: ClientError?) { end(error) }

    /// Handles bytes of the other protocol.
    func upgradeReceived(_ bytes: [UInt8]) {
        times.receivedBytes += Int64(bytes.count)
        if !channel.push(nil, [bytes], wakes: session.wakes) { readerIsBehind = true }
    }
}
