import CacheStore
import Documents
import HTTPCore
import Logging
import PinfoldEngine

extension AdminResource {
    static let purgePath = "/api/v1/cache/purge"

    /// `POST /api/v1/cache/purge`
    static func purge(_ cache: CacheAdministration?) -> AdminResource {
        AdminResource(
            method: .post, path: purgePath, caller: .operator, name: "purge",
            summary: "purges stored responses, and answers when no later request gets them",
            responses: [
                Response(
                    status: 200, description: "The purge is in effect, or was counted.",
                    schema: PurgeAnswer.shape.schema),
                Response(
                    status: 400, description: "The content says nothing that can be purged.",
                    schema: AdminError.shape.schema),
                Response(
                    status: 500,
                    description: "The purge would not survive a restart; of a dry run, what is on "
                        + "disk could not be read.",
                    schema: AdminError.shape.schema),
                Response(
                    status: 503,
                    description: "Another process has the cache, or many purges wait; of a dry "
                        + "run, the cache on disk is not open yet, or off.",
                    schema: AdminError.shape.schema),
            ],
            content: Content(
                description: "What is purged: one member at least besides soft and dryRun.",
                schema: PurgeCommand.schema),
            answer: { answer(to: $0, cache) })
    }

    private static func answer(
        to request: AdminRequest, _ cache: CacheAdministration?
    ) -> AdminAnswer {
        guard let cache, let policy = cache.policy else { return .noCache }
        let command: PurgeCommand
        do throws(PurgeCommand.PurgeCommandError) {
            command = try PurgeCommand(request.content ?? [])
        } catch {
            return .now(PurgeAnswer.invalid(error.detail))
        }
        return .later { reply in
            let isAccepted = cache.purges.submit(command, under: policy) { order, outcome in
                var metadata: Logger.Metadata = [
                    "what": "\(order?.text ?? "nothing")", "soft": "\(command.isSoft)",
                    "dry_run": "\(command.isDryRun)", "outcome": "\(outcome.text)",
                ]
                if case .purged(let result) = outcome, let fleet = result.fleet {
                    metadata.merge(fleet.metadata) { $1 }
                }
                cache.logger.notice("purged", metadata: metadata)
                reply(PurgeAnswer.response(to: command, outcome))
            }
            if !isAccepted { reply(PurgeAnswer.busy) }
        }
    }

    /// `GET /api/v1/cache/purge?id=`
    static func purgeProgress(_ cache: CacheAdministration?) -> AdminResource {
        AdminResource(
            method: .get, path: purgePath, caller: .operator, name: "purgeProgress",
            summary: "how far a purge has been carried out, which is in effect already",
            responses: [
                Response(
                    status: 200, description: "The progress.",
                    schema: PurgeProgressAnswer.shape.schema),
                Response(
                    status: 404, description: "There is no such purge, or no longer.",
                    schema: AdminError.shape.schema),
            ],
            parameters: [
                Parameter(
                    name: "id", description: "The number that the purge was answered with.",
                    isRequired: true)
            ],
            answer: { request in
                guard let cache else { return .noCache }
                guard let id = AdminQuery(target: request.target)["id"].flatMap({ UInt64($0) })
                else {
                    return .problem(
                        400, "invalid-query", "Invalid query", "expected id, the number of a purge")
                }
                guard let progress = cache.store.purgeProgress(id) else {
                    return .problem(
                        404, "not-found", "Not found",
                        "there is no purge \(id); those that were carried out are forgotten")
                }
                return .json(
                    PurgeProgressAnswer(id: id, progress: progress),
                    as: PurgeProgressAnswer.shape)
            })
    }
}

extension AdminAnswer {
    /// There is no cache.
    static var noCache: AdminAnswer {
        .problem(
            409, "no-cache", "No cache", "the gateway stores no responses (cache.enabled: false)")
    }
}

extension PurgeOutcome {
    /// For the log.
    var text: String {
        switch self {
        case .purged(let result): "purge \(result.id)"
        case .counted(let memory, let disk): "\(memory) in memory and \(disk) on disk counted"
        case .notCounted(let error): "not counted: \(error)"
        case .handedOver: "refused: another process has the cache"
        case .invalid(let cause): "refused: \(cause)"
        case .failed(let cause): "failed: \(cause)"
        }
    }
}

extension PurgeCommand {
    static let schema: DocumentValue = {
        func texts(_ description: String) -> DocumentValue {
            .dictionary([
                "type": .string("array"), "description": .string(description),
                "items": .dictionary(["type": .string("string")]),
            ])
        }
        func flag(_ description: String) -> DocumentValue {
            .dictionary(["type": .string("boolean"), "description": .string(description)])
        }
        return .dictionary([
            "type": .string("object"),
            "properties": .dictionary([
                "urls": texts("URLs, with all variants."),
                "prefixes": texts("The beginnings of URLs: http://HOST/ and what follows."),
                "hosts": texts("example.com, *.example.com or **.example.com, perhaps with :PORT."),
                "tags": texts("Members of Surrogate-Key, Cache-Tag or Cache-Groups."),
                "everything": flag("Everything that is stored."),
                "soft": flag("Make it stale instead of removing it."),
                "dryRun": flag("Count, and purge nothing."),
            ]),
        ])
    }()
}

/// What a purge is answered with.
struct PurgeAnswer: Sendable {
    var id: UInt64?
    var isSoft = false
    var isDryRun = false
    var memoryEntries = 0
    var diskEntries = 0
    var isComplete = true
    var fleet: PurgeResult.Fleet?

    static let shape = ObjectShape<PurgeAnswer>(
        "A purge.",
        [
            .optionalNumber("id", "Its number; absent for a dry run.") { $0.id.map { Int($0) } },
            .flag("soft", "Whether it makes stale and does not remove.") { $0.isSoft },
            .flag("dryRun", "Whether it was only counted.") { $0.isDryRun },
            .number(
                "memoryEntries",
                "Responses removed from memory until now; of a dry run, those in memory."
            ) { $0.memoryEntries },
            .number(
                "diskEntries",
                "Responses removed from the disk until now; of a dry run, those on disk."
            ) { $0.diskEntries },
            .flag("complete", "Whether nothing is left to be removed. Nobody gets it either way.") {
                $0.isComplete
            },
            .optionalObject("fleet", fleet) { $0.fleet },
        ])

    private static let fleet = ObjectShape<PurgeResult.Fleet>(
        "What became of it in the gateways that share the cache; absent without cache.shared.",
        [
            .flag(
                "recorded",
                "Whether it is where gateways that are away now will find it. If not, it will be "
                    + "as soon as the shared cache is back."
            ) { $0.isRecorded },
            .texts("confirmed", "The gateways that have carried it out, this one included.") {
                $0.confirmed
            },
            .texts(
                "unconfirmed",
                "The gateways that have not said so within a second. One that does not reach the "
                    + "shared cache confirms all that it has with the servers after "
                    + "cache.shared.grace."
            ) { $0.unconfirmed },
            .texts(
                "away",
                "Gateways that have not reached the shared cache for longer than their "
                    + "cache.shared.grace, within the last day, and have not ended in order. What "
                    + "one of them confirms with the servers it may use once meanwhile, by "
                    + "stale-while-revalidate."
            ) { $0.away },
        ])

    static func response(to command: PurgeCommand, _ outcome: PurgeOutcome) -> AdminResponse {
        var answer = PurgeAnswer(isSoft: command.isSoft, isDryRun: command.isDryRun)
        switch outcome {
        case .purged(let result):
            answer.id = result.id
            answer.memoryEntries = result.memoryEntries
            answer.diskEntries = result.diskEntries
            answer.isComplete = result.isComplete
            answer.fleet = result.fleet
        case .counted(let memory, let disk):
            answer.memoryEntries = memory
            answer.diskEntries = disk
        case .notCounted(let error): return error.problem.response
        case .handedOver: return CacheListingError.handedOver.problem.response
        case .invalid(let detail): return invalid(detail)
        case .failed(let cause):
            return AdminError(500, "purge-not-recorded", "Purge not recorded", cause).response
        }
        return .json(answer, as: shape)
    }

    static func invalid(_ detail: String) -> AdminResponse {
        AdminError(400, "invalid-purge", "Invalid purge", detail).response
    }

    static var busy: AdminResponse {
        AdminError(
            503, "busy", "Too many purges", "too many purges are waiting",
            fields: [AdminResponse.Field("Retry-After", "1")]
        ).response
    }
}

/// How far a purge has been carried out.
struct PurgeProgressAnswer: Sendable {
    var id: UInt64
    var progress: PurgeProgress

    static let shape = ObjectShape<PurgeProgressAnswer>(
        "How far a purge has been carried out. What is not removed yet is found by nobody.",
        [
            .number("id", "Its number.") { Int($0.id) },
            .number("memoryEntries", "Responses removed from memory until now.") {
                $0.progress.memoryEntries
            },
            .number("diskEntries", "Responses removed from the disk until now.") {
                $0.progress.diskEntries
            },
            .flag("complete", "Whether nothing is left to be removed.") {
                $0.progress.isComplete
            },
        ])
}
