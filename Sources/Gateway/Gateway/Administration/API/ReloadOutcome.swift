import HTTPCore

/// What came of a request to read the configuration again.
package enum ReloadOutcome: Sendable {
    /// A configuration that is in force.
    package struct Applied: Sendable {
        /// Its number.
        package var generation: Int
        /// The sections that differ from those before.
        package var changed: [String]
        /// The names of what is no longer there, after the section: `hosts: api.example.com`.
        package var removed: [String]
        /// The sections whose changes take effect only after a restart.
        package var needRestart: [String]
        /// The warnings about it.
        package var warnings: [ConfigurationFinding]
        /// What differs in effect, in words: a line, and one more for each detail.
        package var differences: [String] = []
    }

    /// All workers use what was read.
    case applied(Applied)
    /// What was read could be used, and is not; the number is that of the one in force.
    case tried(Applied)
    /// What was in force stays, for these reasons.
    case refused([ConfigurationFinding])
    /// It was not read: the gateway is shutting down.
    case draining
    /// It was not read: too many wait for that.
    case busy
}

extension ReloadOutcome {
    /// The shape of success, also of a reload that was only tried.
    static let shape = ObjectShape<Applied>(
        "What was read, beside what was in force.",
        [
            .number("generation", "The number of what is in force: each reload adds one.") {
                $0.generation
            },
            .texts("changed", "The sections that differ.") { $0.changed },
            .texts("removed", "What is no longer there: a section, and the name in it.") {
                $0.removed
            },
            .texts("needRestart", "The sections whose changes wait for a restart.") {
                $0.needRestart
            },
            .list("warnings", ConfigurationFinding.shape, "The warnings about what was read.") {
                $0.warnings
            },
            .texts("differences", "What differs in effect, in words.") { $0.differences },
        ])

    /// The response that says so.
    var response: AdminResponse {
        switch self {
        case .applied(let read), .tried(let read): .json(read, as: Self.shape)
        case .refused(let errors):
            AdminError(
                422, "configuration-refused", "Configuration refused",
                "the configuration was not reloaded; the previous one remains in effect",
                errors: errors
            ).response
        case .draining:
            AdminError(
                503, "draining", "Shutting down",
                "the gateway is shutting down, and reads no configuration"
            ).response
        case .busy:
            AdminError(
                503, "busy", "Too many reloads", "too many reloads are waiting",
                fields: [AdminResponse.Field("Retry-After", "1")]
            ).response
        }
    }
}

extension AdminResource {
    /// `POST /api/v1/reload`
    static func reload(
        _ reload: @escaping @Sendable (_ ended: @escaping @Sendable (ReloadOutcome) -> Void) -> Void
    ) -> AdminResource {
        AdminResource(
            method: .post, path: "/api/v1/reload", caller: .operator, name: "reload",
            summary: "reads the configuration again, as SIGHUP does, and answers when it is in use",
            responses: [
                Response(
                    status: 200, description: "All workers use what was read.",
                    schema: ReloadOutcome.shape.schema),
                Response(
                    status: 422, description: "What was in force stays in force.",
                    schema: AdminError.shape.schema),
                Response(
                    status: 503, description: "Nothing was read.",
                    schema: AdminError.shape.schema),
            ],
            answer: { _ in
                .later { reply in reload { reply($0.response) } }
            })
    }

    /// `GET /api/v1/reload/differences`
    static func reloadDifferences(
        _ tryReload: @escaping @Sendable () -> ReloadOutcome,
        work: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool
    ) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/reload/differences", caller: .operator,
            name: "reloadDifferences",
            summary: "reads the configuration, and says what a reload would change",
            responses: [
                Response(
                    status: 200, description: "What was read can be used.",
                    schema: ReloadOutcome.shape.schema),
                Response(
                    status: 422, description: "What was read would be refused.",
                    schema: AdminError.shape.schema),
                Response(
                    status: 503, description: "Nothing was read.",
                    schema: AdminError.shape.schema),
            ],
            answer: { _ in
                .later { reply in
                    let isTaken = work { reply(tryReload().response) }
                    if !isTaken { reply(ReloadOutcome.busy.response) }
                }
            })
    }
}
