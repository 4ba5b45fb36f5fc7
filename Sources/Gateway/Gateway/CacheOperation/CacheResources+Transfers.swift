import CacheStore
import Documents
import HTTPCore

extension AdminResource {
    private static var parameters: [Parameter] {
        [
            Parameter(
                name: "session", description: "A name for the transfer, chosen by the caller.",
                isRequired: true),
            Parameter(
                name: "piece", description: "The number of the piece, from 0.", isRequired: true),
        ]
    }

    /// `GET /api/v1/cache/export`
    static func export(_ cache: CacheAdministration?) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/cache/export", caller: .operator, name: "cacheExport",
            summary: "the next piece of an archive of what is stored; nothing behind its end",
            responses: [
                Response(
                    status: 409,
                    description: "It is not the next piece (out-of-order), or the database was "
                        + "opened anew since the first one (cache-list-outdated).",
                    schema: AdminError.shape.schema)
            ] + Response.ofUnreadableCache,
            parameters: parameters,
            answer: { request in
                guard let cache else { return .noCache }
                guard let (name, piece) = transfer(request) else { return invalidTransfer }
                let export: CacheExport
                do throws(CacheTransfers.TransferError) {
                    export = try cache.transfers.export(name, piece: piece) { CacheExport(cache) }
                } catch {
                    return problem(error)
                }
                return .later { reply in
                    export.next { reply(response(to: name, $0, cache.transfers)) }
                }
            })
    }

    /// The next piece of an export, or why there is none: then it has ended, unless others are only
    /// in the way.
    private static func response(
        to name: String, _ piece: Result<[UInt8], CacheListingError>, _ transfers: CacheTransfers
    ) -> AdminResponse {
        switch piece {
        case .success(let bytes):
            transfers.exported(name, isLast: bytes.isEmpty)
            return AdminResponse(
                status: 200, contentType: Content.bytes, fields: [AdminSite.noStore], body: bytes)
        case .failure(.busy):
            transfers.postponed(name)
            return CacheListingError.busy.problem.response
        case .failure(let error):
            transfers.exported(name, isLast: true)
            return error.problem.response
        }
    }

    /// `POST /api/v1/cache/import`
    static func `import`(_ cache: CacheAdministration?) -> AdminResource {
        AdminResource(
            method: .post, path: "/api/v1/cache/import", caller: .operator, name: "cacheImport",
            summary: "stores the entries of the next piece of an archive",
            responses: [
                Response(
                    status: 200, description: "What has been done until now.",
                    schema: ImportCounts.shape.schema),
                Response(
                    status: 400, description: "It is no such archive.",
                    schema: AdminError.shape.schema),
                Response(
                    status: 409, description: "It is not the next piece.",
                    schema: AdminError.shape.schema),
                Response(
                    status: 503, description: "Too many imports are under way.",
                    schema: AdminError.shape.schema),
            ],
            parameters: parameters,
            content: Content(
                description: "The next bytes of the archive: at most 65536; none at its end.",
                type: Content.bytes, schema: .dictionary([:])),
            answer: { answer(toImport: $0, cache) })
    }

    private static func answer(
        toImport request: AdminRequest, _ cache: CacheAdministration?
    ) -> AdminAnswer {
        guard let cache, let policy = cache.policy else { return .noCache }
        guard let (name, piece) = transfer(request) else { return invalidTransfer }
        let content = request.content ?? []
        let work: CacheImport
        do throws(CacheTransfers.TransferError) {
            work = try cache.transfers.import(name, piece: piece) { CacheImport(cache, policy) }
        } catch {
            return problem(error)
        }
        do throws(ArchiveError) {
            try work.read(content)
            if content.isEmpty, !work.isComplete { throw .truncated }
        } catch {
            cache.transfers.imported(name, isLast: true)
            return .problem(400, "invalid-archive", "Invalid archive", "the archive: \(error)")
        }
        let counts = work.counts
        if content.isEmpty {
            cache.logger.notice(
                "cache imported",
                metadata: [
                    "stored": "\(counts.stored)", "other_trust": "\(counts.otherTrust)",
                    "damaged": "\(counts.damaged)", "refused": "\(counts.refused)",
                ])
        }
        let isCongested = work.isCongested
        return .later { reply in
            let answer: @Sendable () -> Void = {
                cache.transfers.imported(name, isLast: content.isEmpty)
                reply(.json(counts, as: ImportCounts.shape))
            }
            isCongested ? cache.store.whenStoresDrain(answer) : answer()
        }
    }

    private static func transfer(_ request: AdminRequest) -> (name: String, piece: Int)? {
        let query = AdminQuery(target: request.target)
        guard let name = query["session"], (1...64).contains(name.utf8.count),
            let piece = query["piece"].flatMap({ Int($0) }), piece >= 0
        else { return nil }
        return (name, piece)
    }

    private static var invalidTransfer: AdminAnswer {
        invalid("expected session, a name of 1 to 64 bytes, and piece, a number from 0")
    }

    private static func problem(_ error: CacheTransfers.TransferError) -> AdminAnswer {
        switch error {
        case .outOfOrder:
            .problem(
                409, "out-of-order", "Out of order",
                "it is not the next piece of this session, or the session has ended")
        case .tooMany:
            .problem(
                503, "busy", "Too many transfers",
                "\(CacheTransfers.maximum) transfers are under way",
                [AdminResponse.Field("Retry-After", "1")])
        }
    }
}
