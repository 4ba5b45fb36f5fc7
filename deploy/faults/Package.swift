// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

// Requests of the client library to a server with faults, for deploy/client-soak.
let package = Package(
    name: "client-soak",
    dependencies: [.package(name: "pinfold", path: "../..")],
    targets: [
        .executableTarget(
            name: "faulty-requests",
            dependencies: ["CMalloc", .product(name: "PinfoldClient", package: "pinfold")],
            path: "Sources/requests", swiftSettings: settings),
        .systemLibrary(name: "CMalloc", path: "Sources/CMalloc"),
    ])
