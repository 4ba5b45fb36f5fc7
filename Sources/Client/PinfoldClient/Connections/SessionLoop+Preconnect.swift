import HTTPCore
import PinfoldEngine

// Connections that are made in advance.
extension SessionLoop {
    func preconnect(_ request: PreconnectRequest) {
        let found: Origin?
        do throws(WireError) { found = try origin(of: request) } catch {
            return request.answer(ClientError(.request(error)))
        }
        guard let found else { return request.answer(ClientError(.request(.malformedAuthority))) }
        if let refusal = found.refusal { return request.answer(ClientError(refusal)) }
        let places = takePlaces(for: request)
        guard !places.isEmpty else { return request.answer(nil) }
        let preconnection = Preconnection(
            request, count: places.count, to: found, in: environment
        ) { [unowned self] error in
            preconnections[request.number] = nil
            begin(places.flatMap { queue.remove($0, of: request.origin) })
            closeIfOver()
            request.answer(error)
        }
        preconnections[request.number] = preconnection
        preconnection.start()
    }

    func cancelPreconnection(_ number: UInt64) { preconnections[number]?.end(.cancelled()) }

    /// Takes as many places among the active requests as there are.
    private func takePlaces(for request: PreconnectRequest) -> [UInt64] {
        var places: [UInt64] = []
        for number in request.numbers {
            guard queue.add(number, to: request.origin, priority: .low) else {
                _ = queue.remove(number, of: request.origin)
                break
            }
            places.append(number)
        }
        return places
    }

    /// Returns the engine's origin of a request, or `nil` if its host is too long to be one.
    private func origin(of request: PreconnectRequest) throws(WireError) -> Origin? {
        var parser = RequestHeadParser(limits: environment.policy.headLimits)
        var head = RequestHead()
        let bytes = request.head
        guard case .complete = try parser.parse(bytes.span, into: &head) else {
            throw .truncatedHead
        }
        guard let proxy = request.proxy else {
            return environment.origins.origin(
                host: bytes.span.extracting(head.host.indices), port: head.port,
                scheme: head.scheme, policy: environment.policy)
        }
        return environment.origins.origin(
            host: bytes.span.extracting(head.host.indices), port: head.port,
            scheme: head.scheme, through: proxy, policy: environment.policy)
    }
}
