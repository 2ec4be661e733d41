#include "uneven.h"

#include <ATen/ATen.h>

#include "collectives.h"

namespace ascend_sim {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors list_of_lists(const c10::IValue& value) {
  const auto outer = value.toList();
  TORCH_CHECK(outer.size() == 1, "a collective of ", outer.size(), " lists: HCCL takes one tensor per rank");
  return c10::IValue(outer.get(0)).toTensorVector();
}

bool differ(const Tensors& tensors) {
  for (const auto& tensor : tensors)
    if (tensor.sizes() != tensors.front().sizes()) return true;
  return false;
}

at::Tensor joined(const Tensors& tensors, std::vector<int64_t>& lengths) {
  Tensors flat;
  for (const auto& tensor : tensors) {
    flat.push_back(tensor.reshape(-1));
    lengths.push_back(tensor.numel());
  }
  return at::cat(flat);
}

void all_to_all(c10d::ProcessGroup& group, const Tensors& outputs, const Tensors& inputs) {
  std::vector<int64_t> received, sent;
  auto input = joined(inputs, sent), output = joined(outputs, received);
  group.all_to_all_single(output, input, received, sent)->wait();
  const auto pieces = output.split_with_sizes(received);
  for (size_t i = 0; i < outputs.size(); i++) outputs[i].copy_(pieces[i].view(outputs[i].sizes()));
}

void all_gather(c10d::ProcessGroup& group, const Tensors& outputs, const at::Tensor& input) {
  for (int root = 0; root < group.getSize(); root++) {
    Tensors piece{root == group.getRank() ? input.contiguous() : at::empty(outputs[root].sizes(), outputs[root].options())};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    group.broadcast(piece, options)->wait();
    outputs[root].copy_(piece[0]);
  }
}

void reduce_scatter(c10d::ProcessGroup& group, const at::Tensor& output, const Tensors& inputs, const c10d::ReduceOp& operation) {
  for (int root = 0; root < group.getSize(); root++) {
    Tensors piece{inputs[root].clone(at::MemoryFormat::Contiguous)};
    c10d::ReduceOptions options;
    options.reduceOp = operation;
    options.rootRank = root;
    group.reduce(piece, options)->wait();
    if (root == group.getRank()) output.copy_(piece[0]);
  }
}

}  // namespace

bool is_uneven(const std::string& name, const torch::jit::Stack& stack, size_t base) {
  if (name == "c10d::alltoall_") return true;  // a rank does not know whether others have pieces of different sizes
  if (name == "c10d::allgather_") return differ(list_of_lists(stack[base]));
  return name == "c10d::reduce_scatter_" && differ(list_of_lists(stack[base + 1]));
}

void run_uneven(const std::string& name, const c10::intrusive_ptr<c10d::ProcessGroup>& group, torch::jit::Stack* stack, size_t base) {
  const c10::IValue first = (*stack)[base], second = (*stack)[base + 1];
  if (name == "c10d::alltoall_") all_to_all(*group, first.toTensorVector(), second.toTensorVector());
  else if (name == "c10d::allgather_") all_gather(*group, list_of_lists(first), second.toTensorVector().at(0));
  else reduce_scatter(*group, first.toTensorVector().at(0), list_of_lists(second), *(*stack)[base + 3].toCustomClass<c10d::ReduceOp>());
  stack->resize(base);
  stack->push_back(first);
  stack->emplace_back(completed_work({}));
}

}  // namespace ascend_sim
