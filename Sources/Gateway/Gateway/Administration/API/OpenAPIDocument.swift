import Documents
import HTTPCore

extension AdminResource {
    static let openAPIPath = "/api/v1/openapi.json"

    /// `GET /api/v1/openapi.json`, which describes itself as well.
    static func openAPI(describing others: [AdminResource], version: String) -> AdminResource {
        func resource(_ content: [UInt8]) -> AdminResource {
            AdminResource(
                method: .get, path: openAPIPath, caller: .everyone, name: "openapi",
                summary: "this description of the API",
                responses: [
                    Response(
                        status: 200, description: "An OpenAPI document.",
                        schema: .dictionary(["type": .string("object")]))
                ],
                answer: { _ in
                    .now(
                        AdminResponse(
                            status: 200, contentType: "application/json",
                            fields: [AdminSite.noStore], body: content))
                })
        }
        let all = others + [resource([])]
        return resource(OpenAPIDocument.text(of: all, version: version).jsonLine)
    }
}

/// The description of the API (OpenAPI 3.1), made of its resources.
enum OpenAPIDocument {
    static func text(of resources: [AdminResource], version: String) -> DocumentValue {
        var paths = DocumentDictionary()
        for resource in resources {
            var methods = DocumentDictionary()
            if case .dictionary(let known) = paths[resource.path] { methods = known }
            methods["\(resource.method)"] = operation(resource)
            paths[resource.path] = .dictionary(methods)
        }
        return .dictionary([
            "openapi": .string("3.1.0"),
            "info": .dictionary([
                "title": .string("Pinfold"),
                "summary": .string("The administration of an HTTP gateway."),
                "version": .string(version),
                "license": .dictionary([
                    "name": .string("Apache-2.0"), "identifier": .string("Apache-2.0"),
                ]),
            ]),
            "servers": .array([.dictionary(["url": .string("/")])]),
            "paths": .dictionary(paths),
            "components": .dictionary([
                "schemas": .dictionary(["Problem": AdminError.shape.schema]),
                "securitySchemes": .dictionary([
                    "token": .dictionary([
                        "type": .string("http"), "scheme": .string("bearer"),
                        "description": .string("The token in admin.tokenFile."),
                    ]),
                    "certificate": .dictionary([
                        "type": .string("mutualTLS"),
                        "description": .string(
                            "A certificate of one of admin.tls.clientRoots."),
                    ]),
                ]),
            ]),
        ])
    }

    private static func operation(_ resource: AdminResource) -> DocumentValue {
        var responses = DocumentDictionary()
        for response in resource.responses {
            responses["\(response.status)"] = content(
                response.description,
                response.type
                    ?? (response.status < 400 ? "application/json" : "application/problem+json"),
                response.schema)
        }
        responses["default"] = content(
            "The request was refused.", "application/problem+json",
            .dictionary(["$ref": .string("#/components/schemas/Problem")]))
        var operation: DocumentDictionary = [
            "operationId": .string(resource.name), "summary": .string(resource.summary),
            "security": .array(security(resource.caller)),
        ]
        if !resource.parameters.isEmpty {
            operation["parameters"] = .array(resource.parameters.map(parameter))
        }
        if let content = resource.content {
            operation["requestBody"] = .dictionary([
                "description": .string(content.description), "required": .boolean(true),
                "content": .dictionary([
                    "\(content.type)": .dictionary(["schema": content.schema])
                ]),
            ])
        } else if !resource.method.isSafe {
            operation["requestBody"] = .dictionary([
                "description": .string("No content is needed, but its type is."),
                "required": .boolean(false),
                "content": .dictionary([
                    "application/json": .dictionary([
                        "schema": .dictionary(["type": .string("object")])
                    ])
                ]),
            ])
        }
        operation["responses"] = .dictionary(responses)
        return .dictionary(operation)
    }

    private static func parameter(_ parameter: AdminResource.Parameter) -> DocumentValue {
        let text = DocumentValue.dictionary(["type": .string("string")])
        return .dictionary([
            "name": .string(parameter.name),
            "in": .string(parameter.isInPath ? "path" : "query"),
            "description": .string(parameter.description),
            "required": .boolean(parameter.isRequired),
            "schema": parameter.isRepeatable
                ? .dictionary(["type": .string("array"), "items": text]) : text,
        ])
    }

    /// An empty requirement stands for clients of a Unix socket, and of this machine where there is
    /// no token.
    private static func security(_ caller: AdminCaller) -> [DocumentValue] {
        let none = DocumentValue.dictionary([:])
        switch caller {
        case .everyone: return [none]
        case .reader, .operator:
            return [
                .dictionary(["token": .array([])]), .dictionary(["certificate": .array([])]), none,
            ]
        }
    }

    private static func content(
        _ description: String, _ type: String, _ schema: DocumentValue
    ) -> DocumentValue {
        .dictionary([
            "description": .string(description),
            "content": .dictionary([type: .dictionary(["schema": schema])]),
        ])
    }
}
