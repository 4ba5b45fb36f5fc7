import Clocks
import HTTPCore
import PinfoldEngine
import PinfoldResolver

/// What the resource of explanations is made of.
struct ExplanationSource: Sendable {
    /// The policy in force; `nil` before the start and after the end.
    var policy: @Sendable () -> PolicySnapshot?
    /// Resolves a name as for requests. The completion is called once, on any thread.
    var resolve:
        @Sendable (
            _ name: String, _ completion: @escaping @Sendable (ResolveResult) -> Void
        ) -> Void
    /// What depends on the moment, but for what is stored.
    var moment: @Sendable (RouteExplanation, PolicySnapshot) -> RunningExplanation.Moment
    var cache: CacheAdministration?
    var work: AdminWork
}

extension AdminResource {
    private static let names = [
        "url", "client", "user", "group", "method", "listener", "address",
    ]

    /// `GET /api/v1/explain`
    /// - Parameter source: `nil` if there is nothing to explain by; the resource then says so.
    static func explanation(_ source: ExplanationSource?) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/explain", caller: .operator, name: "explain",
            summary: "how requests for a URL are handled now, by the configuration in force",
            responses: [
                Response(
                    status: 200, description: "An explanation.",
                    schema: RunningExplanation.shape.schema),
                Response(
                    status: 503, description: "Too many others are waiting, or it shuts down.",
                    schema: AdminError.shape.schema),
            ],
            parameters: parameters, answer: { answer(to: $0, source) })
    }

    private static var parameters: [Parameter] {
        [
            Parameter(
                name: "url", description: "An http or https URL, or unix: and a path.",
                isRequired: true),
            Parameter(name: "client", description: "The client's address; by default 127.0.0.1."),
            Parameter(name: "user", description: "A user of authentication, as who asks."),
            Parameter(
                name: "group", description: "A group of the user besides those in the files.",
                isRepeatable: true),
            Parameter(name: "method", description: "The method; by default GET."),
            Parameter(name: "listener", description: "The forward listener's name."),
            Parameter(
                name: "address",
                description: "An address of the host, which is then not resolved.",
                isRepeatable: true),
        ]
    }

    private static func answer(
        to request: AdminRequest, _ source: ExplanationSource?
    ) -> AdminAnswer {
        guard let source else {
            return .problem(
                404, "no-configuration", "No configuration", "this gateway explains nothing")
        }
        let query = AdminQuery(target: request.target)
        if let unknown = query.unknown(besides: names) {
            return invalid(
                "unknown parameter \(unknown); expected one of \(names.joined(separator: ", "))")
        }
        guard let url = query["url"] else { return invalid("expected url") }
        let isFull = request.access.isProven(request.authorization)
        var asked = ExplanationQuery(url: url)
        asked.client = query["client"]
        asked.user = query["user"]
        asked.groups = query.all("group")
        asked.method = query["method"] ?? asked.method
        asked.listener = query["listener"]
        asked.addresses = query.all("address")
        // Otherwise every program on the machine could find out which users there are.
        guard isFull || asked.user == nil && asked.groups.isEmpty else {
            return .problem(
                403, "not-an-operator", "Not an operator",
                "user and group are for who has the token, a certificate or the Unix socket")
        }
        guard let policy = source.policy() else {
            return .problem(
                503, "draining", "Shutting down", "the gateway is starting or shutting down",
                [AdminResponse.Field("Retry-After", "1")])
        }
        do throws(ExplanationQuery.QueryError) {
            let prepared = try asked.prepared(for: policy.configuration)
            return source.explained(prepared, under: policy, isFull: isFull)
        } catch {
            return invalid(error.text(prefix: ""))
        }
    }
}

extension ExplanationSource {
    /// Resolves the host and looks into the cache, and then explains.
    fileprivate func explained(
        _ query: ExplanationQuery.Prepared, under policy: PolicySnapshot, isFull: Bool
    ) -> AdminAnswer {
        .later { reply in
            // Who may only be a program on this machine has no names resolved.
            guard isFull, let name = query.name else {
                return look(query, .success([]), policy, isFull: isFull, reply)
            }
            resolve(name) { result in
                let found: Result<[IPAddress], ExchangeError> =
                    switch result {
                    case .resolved(let answer): .success(answer.addresses)
                    case .failed(let failure): .failure(.nameNotResolved(failure))
                    }
                look(query, found, policy, isFull: isFull, reply)
            }
        }
    }

    private func look(
        _ query: ExplanationQuery.Prepared, _ found: Result<[IPAddress], ExchangeError>,
        _ policy: PolicySnapshot, isFull: Bool,
        _ reply: @escaping @Sendable (AdminResponse) -> Void
    ) {
        @Sendable func explain(_ stored: RunningExplanation.Stored) {
            let isTaken = work {
                let explanation = query.explanation(
                    under: policy, resolved: found, now: Clock.wallSeconds())
                var running = RunningExplanation(
                    explanation, generation: policy.generation, isFull: isFull)
                running.moment = moment(explanation.route, policy)
                running.moment.stored = stored
                reply(.json(running, as: RunningExplanation.shape))
            }
            if !isTaken { reply(.busy) }
        }
        guard isFull, let cache,
            let lookup = try? StoredLookup(query.url, fields: [], under: policy)
        else { return explain(.notAsked) }
        cache.look(for: lookup, inMemoryOnly: false) { result in
            switch result {
            case .success(let variants): explain(.variants(variants))
            case .failure(let error): explain(.unreadable(error.problem.detail))
            }
        }
    }
}

extension Resolver {
    /// Resolves a name to all of its addresses.
    /// - Parameter completion: called once, unless the resolver is closed while it waits: then the
    ///   process ends.
    func resolveWhole(
        _ name: String, _ completion: @escaping @Sendable (ResolveResult) -> Void
    ) {
        resolve(
            name: name, later: { completion(.resolved($0)) },
            completion: { result in
                // Of an incomplete answer the rest follows.
                if case .resolved(let answer) = result, !answer.isComplete { return }
                completion(result)
            })
    }
}
