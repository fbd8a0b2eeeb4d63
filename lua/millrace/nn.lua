-- mr.nn: modules, their first values and losses. docs/nn.md is the user's page. The module is a function of the
-- tools that src/bind/nn/nn.c hands to it.
--# nn of mr.nn: Modules: the layers of networks, and losses. docs/nn.md explains them.
return function(tools)
  local module = require "millrace.nn.module" (tools)
  local init = require "millrace.nn.init" (tools)
  local layers = require "millrace.nn.layers" (tools, module, init)
  local losses = require "millrace.nn.losses" (tools, module)
  local recurrent = require "millrace.nn.recurrent" (tools, module, init)
  local utils = require "millrace.nn.utils" (tools, module)
  local parallel = require "millrace.nn.parallel" (tools, module)
  local nn = { Module = module.methods, plain_module = module.plain, init = init, utils = utils, parallel = parallel,
    Parameter = module.parameter }
  for name, class in pairs(layers) do nn[name] = class end
  for name, class in pairs(recurrent) do nn[name] = class end
  for name, class in pairs(losses) do nn[name] = class end
  return nn
end
